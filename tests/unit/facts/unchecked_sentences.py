"""What an agent says it did not check or do, and near misses, by language.

Written in three rounds, and judged once before the table was changed by them: UNCHECKED, TO_BE_CHECKED and NOTHING_LEFT
before it was made (found: 24 of 111; taken wrongly: 2 of 45), LATER and LATER_NOTHING_LEFT after (31 of 37; 8 of 24), the
last 16 of these after that (13 of 15; 4 of 16). All have the same author.
"""

UNCHECKED = """\
en I have not tried it with a real calendar.
en I haven't been able to check the layout on a phone.
en The import is untested.
en The rollback has never been run.
en Nothing has been rolled out yet.
en I did not verify the figures.
en This was not tried against the live API.
en I could not confirm that the certificate is valid.
de Ich habe es noch nicht mit einem echten Kalender ausprobiert.
de Das Layout habe ich nicht auf dem Handy überprüft.
de Der Import ist ungetestet.
de Noch nicht geprüft: die Zahlen vom März.
de Ausgerollt ist noch nichts.
de Die Migration wurde noch nicht ausgeführt.
de Ob das Zertifikat gilt, konnte ich nicht nachsehen.
fr Je ne l'ai pas encore essayé avec un vrai calendrier.
fr Je n'ai pas vérifié les chiffres de mars.
fr L'import n'a pas été testé.
fr La migration n'a jamais été lancée.
fr Rien n'est encore déployé.
fr La mise en page reste à vérifier sur un téléphone.
es No lo he probado con un calendario real.
es Todavía no he comprobado las cifras de marzo.
es La importación no se ha probado.
es La migración aún no se ha ejecutado.
es Todavía no está desplegado nada.
es No verifiqué el certificado.
it Non l'ho provato con un calendario vero.
it Non ho ancora controllato le cifre di marzo.
it L'importazione non è stata testata.
it La migrazione non è ancora stata eseguita.
it Per ora non è stato pubblicato nulla.
it Non ho verificato il certificato.
pt Não testei com um calendário de verdade.
pt Ainda não conferi os números de março.
pt A importação não foi testada.
pt A migração ainda não foi executada.
pt Nada foi publicado ainda.
pt Não verifiquei o certificado.
nl Ik heb het nog niet met een echte agenda geprobeerd.
nl De cijfers van maart heb ik niet nagekeken.
nl De import is niet getest.
nl De migratie is nog niet gedraaid.
nl Er is nog niets uitgerold.
nl Uitrollen is niet gelukt.
pl Nie wypróbowałem tego z prawdziwym kalendarzem.
pl Jeszcze nie sprawdzałem danych z marca.
pl Import nie został przetestowany.
pl Migracja nie była jeszcze uruchamiana.
pl Nic jeszcze nie zostało wdrożone.
pl Nie zweryfikowałam certyfikatu.
ru Я не пробовал это с настоящим календарём.
ru Цифры за март я ещё не проверял.
ru Импорт не протестирован.
ru Миграция ещё не запускалась.
ru Пока ничего не развёрнуто.
ru Сертификат не проверен.
zh 我还没有用真实的日历试过。
zh 三月的数字尚未核对。
zh 导入功能未经测试。
zh 迁移脚本还没跑过。
zh 目前什么都还没有部署。
zh 没有检查证书是否有效。
ja 実際のカレンダーではまだ試していません。
ja 三月の数字は確認していません。
ja インポートは未検証です。
ja マイグレーションはまだ実行していません。
ja まだ何もデプロイしていません。
ja 証明書はチェックできていません。
ko 실제 캘린더로는 아직 시험해 보지 않았습니다.
ko 3월 숫자는 확인하지 못했습니다.
ko 가져오기 기능은 테스트하지 않았습니다.
ko 마이그레이션은 아직 실행하지 않았습니다.
ko 아직 아무것도 배포하지 않았습니다.
ko 인증서는 검증되지 않았습니다.
"""

TO_BE_CHECKED = """\
en The wording is provisional; somebody from the office must review it.
en The coordinates come from memory and should be checked against the map.
en For now the prices are placeholders.
de Der Text ist vorläufig, jemand aus dem Büro muss ihn noch prüfen.
de Die Koordinaten müssen noch kontrolliert werden.
de Die Preise sind vorerst Platzhalter.
fr Le texte est provisoire, quelqu'un du bureau doit le relire.
fr Les coordonnées viennent d'une vieille carte : il faut les vérifier.
fr Les prix restent à confirmer.
es El texto es provisional, alguien de la oficina tiene que revisarlo.
es Hay que comprobar las coordenadas con el mapa.
es Los precios son de momento de relleno y se deben confirmar.
it Il testo è provvisorio e qualcuno dell'ufficio lo deve rivedere.
it Le coordinate sono da verificare sulla mappa.
it I prezzi vanno ancora confermati.
pt O texto é provisório, alguém do escritório precisa revisá-lo.
pt É preciso conferir as coordenadas no mapa.
pt Os preços ainda devem ser confirmados.
nl De tekst is voorlopig, iemand van kantoor moet hem nog nalezen.
nl De coördinaten moeten nog gecontroleerd worden.
nl De prijzen zijn voorlopig en moeten bevestigd worden.
pl Tekst jest tymczasowy, ktoś z biura musi go sprawdzić.
pl Współrzędne trzeba jeszcze zweryfikować.
pl Ceny są prowizoryczne.
ru Текст временный, кто-то из офиса должен его проверить.
ru Координаты нужно сверить с картой.
ru Цены пока предварительные.
zh 文字是暂定的，需要办公室的人审核。
zh 坐标需要再核对一下地图。
zh 价格暂时是占位内容。
ja 文面は仮のもので、事務所の人に確認してもらう必要があります。
ja 座標は地図で確認が必要です。
ja 価格は暫定です。
ko 문구는 임시이므로 사무실에서 검토해야 합니다.
ko 좌표는 지도로 확인이 필요합니다.
ko 가격은 아직 임시 값입니다.
"""

NOTHING_LEFT = """\
en The code checks whether the value was not tested before.
en It does not need to be checked by hand.
en The parser must verify the signature before it writes.
en I verified the figures; none has to be changed.
en A provisional booking is deleted after an hour.
en The function returns False if the address was not verified.
en If the token is missing, the signature has not been checked.
en I have tried it with a real calendar.
en It has never been easier to run.
de Ich habe die Zahlen geprüft, sie stimmen.
de Die Funktion prüft, ob die Adresse noch nicht bestätigt wurde.
de Wenn der Server fehlt, wird noch nichts geprüft.
de Das muss nicht noch einmal geprüft werden.
de Eine vorläufige Buchung verfällt nach einer Stunde.
fr J'ai vérifié les chiffres, ils sont justes.
fr La fonction doit vérifier la signature.
fr Il n'est pas nécessaire de les vérifier.
fr Une réservation provisoire expire après une heure.
es He comprobado las cifras y son correctas.
es La función debe verificar la firma.
es No hace falta revisarlo.
es Una reserva provisional caduca en una hora.
it Ho verificato le cifre, sono giuste.
it La funzione deve verificare la firma.
it Non serve controllarlo.
it Una prenotazione provvisoria scade dopo un'ora.
pt Conferi os números, estão certos.
pt A função deve verificar a assinatura.
pt Não é preciso conferir.
nl Ik heb de cijfers nagekeken, ze kloppen.
nl De functie moet de handtekening controleren.
nl Een voorlopige boeking vervalt na een uur.
pl Sprawdziłem dane, są poprawne.
pl Funkcja musi sprawdzić podpis.
pl Nie trzeba tego sprawdzać.
ru Я проверил цифры, они верны.
ru Функция должна проверить подпись.
ru Проверять это не нужно.
zh 我已经核对了数字。
zh 这个函数需要检查签名。
zh 不需要再检查。
ja 数字を確認しました。
ja この関数は署名を確認します。
ja 確認する必要はありません。
ko 숫자를 확인했습니다.
ko 이 함수는 서명을 확인해야 합니다.
ko 확인할 필요가 없습니다.
"""

LATER = """\
en I couldn't test the printer driver without hardware.
en The backup script hasn't been executed on the server so far.
en The dates are placeholders until you send the real ones.
de Den Druckertreiber konnte ich ohne Gerät nicht testen.
de Auf dem Server ist das Skript noch nie gelaufen.
de Bitte die Übersetzung noch von einem Muttersprachler gegenlesen lassen.
fr Je n'ai pas pu tester le pilote sans imprimante.
fr Le script n'a pas encore été exécuté sur le serveur.
fr Les dates sont provisoires.
es No he podido probar el controlador sin impresora.
es El guion no se ha ejecutado todavía en el servidor.
es Falta que alguien revise la traducción.
it Non ho potuto provare il driver senza stampante.
it Lo script non è mai stato eseguito sul server.
it La traduzione è da rivedere.
pt Não consegui testar o driver sem impressora.
pt O script ainda não foi executado no servidor.
pt A tradução precisa ser revisada por alguém.
nl Ik heb de driver zonder printer niet kunnen testen.
nl Het script is op de server nog niet gedraaid.
nl De vertaling moet nog nagelezen worden.
pl Bez drukarki nie mogłem przetestować sterownika.
pl Skrypt nie był jeszcze uruchamiany na serwerze.
pl Tłumaczenie ktoś powinien przejrzeć.
ru Без принтера я не смог проверить драйвер.
ru Скрипт на сервере ещё не запускался.
ru Перевод надо ещё вычитать.
zh 没有打印机，所以无法测试驱动。
zh 脚本还没有在服务器上运行过。
zh 翻译需要请专业的人校对。
ja プリンターがないのでドライバーは試せていません。
ja スクリプトはサーバーでまだ実行していません。
ja 翻訳は専門の人に確認してもらう必要があります。
ko 프린터가 없어서 드라이버를 시험하지 못했습니다.
ko 스크립트는 아직 서버에서 실행하지 않았습니다.
ko 번역은 담당자가 검토해야 합니다.
en So far I never ran the end-to-end suite.
"""

LATER_NOTHING_LEFT = """\
en Orders that were not confirmed expire after a day.
en The importer skips rows that have not been checked.
en You should check the log when it fails.
en The tests cover what was never tested before.
de Bestellungen, die nicht bestätigt wurden, verfallen.
de Der Import prüft jede Zeile.
de Die Tests müssen nicht laufen.
fr Les commandes non confirmées expirent.
fr Il faut confirmer l'adresse pour s'inscrire.
es Los pedidos que no se han confirmado caducan.
es Cada fila debe ser verificada.
it Gli ordini che non sono stati confermati scadono.
it Ogni riga deve essere controllata.
pt Os pedidos que não foram confirmados expiram.
nl Bestellingen die nog niet bevestigd zijn, vervallen.
pl Zamówienia, które nie zostały potwierdzone, wygasają.
ru Заказы, которые не были проверены, удаляются.
ru Временный файл удаляется.
zh 未确认的订单会过期。
zh 尚未验证的用户不能登录。
ja 未確認の注文は一日で消えます。
ja 未公開の記事は表示しません。
ko 확인하지 않은 주문은 만료됩니다.
ko 임시 파일은 삭제됩니다.
en Users whose address was not confirmed see a banner.
en A draft is not published until you press the button.
en The cache is never checked twice.
de Entwürfe werden nicht veröffentlicht.
de Adressen, die noch nicht bestätigt sind, werden übersprungen.
fr Les brouillons ne sont pas publiés.
fr Les adresses qui n'ont pas été vérifiées sont ignorées.
es Los borradores no se publican.
it Le bozze non vengono pubblicate.
pt Os rascunhos não são publicados.
nl Concepten worden niet gepubliceerd.
pl Szkice nie są publikowane.
ru Черновики не публикуются.
zh 草稿不会发布。
ja 下書きは公開されません。
ko 초안은 게시되지 않습니다.
"""

LEFT_TO_DO = """\
en The second finding is not mended: one error ends the loop.
en I have not drawn the map of the harbour.
en You have to put the token into the environment yourself.
en The domain is not yet configured at the registrar.
de Die Schlüsseldatei habe ich nicht angelegt, dafür brauche ich das Passwort.
de Das Zertifikat musst du selbst in den Ordner legen.
de Die Weiterleitung am Router kann ich von hier nicht einstellen, das kann ich nicht ändern.
fr Je n'ai pas dessiné le plan du port.
fr Vous devez mettre la clé dans le fichier vous-même.
es Los horarios reales siguen sin descargarse.
es No lo he añadido al menú de la noche.
es Tendrás que poner la clave en el servidor tú mismo.
it Non ho disegnato la mappa del porto.
it Dovrai mettere la chiave sul server a mano.
pt Não desenhei o mapa do porto.
pt Você precisa colocar a chave no servidor manualmente.
nl De kaart van de haven heb ik niet getekend.
nl De sleutel moet je zelf op de server zetten.
pl Nie narysowałem mapy portu.
pl Klucz musisz wgrać na serwer ręcznie.
ru Я не нарисовал карту порта.
ru Ключ вам нужно положить на сервер вручную.
zh 港口的地图还没画好。
zh 你需要自己把密钥放到服务器上。
ja 地図の絵そのものは作れませんでした。
ja 設定を読んでいない点は直していません。
ja 鍵はご自身でサーバーに置いてください。
ko 항구 지도는 그리지 못했습니다.
ko 열쇠는 서버에 직접 넣어야 합니다.
sv Jag har inte ritat kartan över hamnen.
sv Nyckeln måste du lägga på servern själv.
sv Importen är otestad.
sv Jag har inte testat mot den riktiga servern.
cs Mapu přístavu jsem nenakreslil.
cs Klíč musíte nahrát na server sami.
cs Import zatím není otestován.
cs Skript jsem na serveru nevyzkoušel.
tr Liman haritası çizilemedi.
tr Bülten metnini henüz yazmadım.
tr Anahtarı sunucuya elle koymanız gerekiyor.
tr İçe aktarma test edilmedi.
tr Gerçek sunucuda denemedim.
uk Я ще не намалював карту порту.
uk Ключ вам потрібно покласти на сервер самостійно.
uk Імпорт не протестовано.
uk Я не перевіряв це на сервері.
ar لم أرسم خريطة الميناء.
ar يجب عليك وضع المفتاح على الخادم بنفسك.
ar لم أختبر الاستيراد.
ar لم يتم التحقق من الشهادة.
"""
"""Written with the rules for them (their author's)."""

NOTHING_TO_DO = """\
en If you rename a file, you have to change the index yourself.
en You have to confirm each order yourself.
en The flag is not set by default.
en I have not touched the other files.
en I did not create anything else.
de Jede Bestellung musst du selbst bestätigen.
de Die Adressen, die ich nicht kenne, sind leer.
de Ich habe die alte Datei nicht angefasst.
fr Chaque facture, vous devez l'imprimer vous-même.
es El archivo sigue sin cambios.
es No he tocado el menú.
it Non ho modificato la mappa.
pt Não alterei o mapa.
nl Elke bestelling moet je zelf bevestigen.
pl Nie zmieniałem mapy.
ru Я не менял карту.
zh 我没有修改地图。
ja 地図は変えませんでした。
ja 問題は見つかりませんでした。
ko 지도는 바꾸지 않았습니다.
sv Jag har inte ändrat kartan.
sv Jag har testat mot servern.
sv Om den inte har testats visas en varning.
cs Mapu jsem nezměnil.
cs Import je otestován.
tr Haritaya dokunmadım.
tr Diğer dosyaları değiştirmedim.
tr Test edilmeyen satırlar atlanır.
uk Я не змінював карту.
uk Якщо рядок не перевірено, він пропускається.
ar لم أغير الخريطة.
ar اختبرت الاستيراد.
"""
